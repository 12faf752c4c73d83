"""Values at the sites of a labelled graph: moments matched, predictions by the same surrogate."""
