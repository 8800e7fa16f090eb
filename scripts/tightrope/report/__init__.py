"""Render summary.json as the HTML report.

- `page`: its content, a part per section; `html`, `tables`: the page and its tables as HTML
- `sections`: what each section says; `charts`: the charts, as Vega-Lite specifications
- `graphs`: the layers of ONNX files; `style`: formats of numbers and colours
- `template`: HTML, CSS and JavaScript
"""
