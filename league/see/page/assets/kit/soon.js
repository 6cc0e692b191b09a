// A section whose data is still being computed beside the requests.

/** Read the section again in a moment, unless it is left before. */
export function soon(context) {
  const timer = setTimeout(context.refresh, 400);
  context.onRemove(() => clearTimeout(timer));
}
