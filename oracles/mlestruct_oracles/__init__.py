"""MAP solvers behind mlestruct's oracle seam; nothing is imported until it is asked for."""
