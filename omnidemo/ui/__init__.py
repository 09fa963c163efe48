"""The Gradio app: `build_app` in `app.py`. Gradio is imported in this package only."""
