"""Files that have texts and their translations: XLIFF, TMX, TSV, JSON Lines."""
