"""Files: named, locked, written whole, and journals of what is finished."""
