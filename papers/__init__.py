"""One script per paper: what it claims, run again here, beside its published figures."""
