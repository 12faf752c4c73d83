"""Contrastive free energies: objectives between pseudo-likelihood and maximum likelihood."""
