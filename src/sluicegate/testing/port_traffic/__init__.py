"""Traffic of a port that never was: ships around the Singapore Strait, and the sentences of AIS that they would send."""
