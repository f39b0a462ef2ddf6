"""PS-Tree and the two indexes on it: PSTBloom and PSTHash [THESIS 6 to 8]."""
