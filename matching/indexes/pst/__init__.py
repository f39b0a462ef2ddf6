"""PS-Tree and the two indexes that use it: PSTBloom and PSTHash [THESIS 6 to 8]. It may import what the indexes may
import.
"""

from matching.indexes.pst.bloom import PSTBloom
from matching.indexes.pst.hash import PSTHash
from matching.indexes.pst.ps_tree import Leaf, PSTree, PSTrees

__all__ = ["Leaf", "PSTBloom", "PSTHash", "PSTree", "PSTrees"]
