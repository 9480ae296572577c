"""The reference decoder of ONNX exports: plain files that need neither torch nor lacuner.

An export gets one file, `tagger.py`, joined from the module `tagger` and those that fit its encoder and head. They use
only numpy, onnxruntime and, for Hugging Face encoders, tokenizers. Words are split by `re` of the standard library.
"""
