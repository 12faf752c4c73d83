"""The direct route: objectives of θ, minimised by L-BFGS or small batches."""
