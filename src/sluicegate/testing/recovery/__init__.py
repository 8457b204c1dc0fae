"""An engine that is killed again and again: what it delivered must be what an undisturbed one delivers."""
