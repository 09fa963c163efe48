// The widgets of the page by name, and how Gradio mounts one. A widget is (host, context) => {update(value)}.

export const widgets = {};

// Called by every gr.HTML of the page (see ui/shell.py: widget).
export const mount = (name, context) => {
  const host = context.element.querySelector(".omni-widget");
  if (!host || host.dataset.mounted) return;
  host.dataset.mounted = "1";
  const made = widgets[name]?.(host, context) || {};
  const update = () => {
    if (made.update && context.props.value) made.update(context.props.value);
  };
  context.watch("value", update);
  update();
};
