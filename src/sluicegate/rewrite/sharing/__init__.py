"""Many authorized plans as one network of shared operators with privacy switches (seed 003; R16–R18)."""
