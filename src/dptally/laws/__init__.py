"""The concrete laws: for each family of losses all that accounting may ask of it."""
