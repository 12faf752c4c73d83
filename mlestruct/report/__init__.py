"""report.html: one page that opens anywhere and needs nothing else."""
