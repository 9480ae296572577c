"""Taggers for other libraries: spaCy, Hugging Face, ONNX; each export is proved to predict what the tagger predicts."""
