"""PS-Tree and the two indexes that use it: PSTBloom and PSTHash [THESIS 6 to 8]."""
