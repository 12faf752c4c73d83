def faults_of(diagnosis):
    """What is to be put right, or not understood."""
    return [found for found in diagnosis.findings if found.severity != "note"]
