"""AMD's GPUs: what finds their devices, compiles for them, and reads what was compiled."""
