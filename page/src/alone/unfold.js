// Decodes the CSS, script and data in the preceding elements of a standalone file (Ascii85 and deflate).
{
  const packed = [...document.querySelectorAll("script[data-bytes]")];
  const bytes = ({ textContent, dataset }) => {
    const text = textContent.replaceAll("z", "!!!!!");
    const found = new DataView(new ArrayBuffer((text.length / 5) * 4));
    const digit = (at) => (text.charCodeAt(at) === 126 ? 27 : text.charCodeAt(at) - 33);
    for (let at = 0, to = 0; at < text.length; at += 5, to += 4) {
      const high = (digit(at) * 85 + digit(at + 1)) * 85 + digit(at + 2);
      found.setUint32(to, (high * 85 + digit(at + 3)) * 85 + digit(at + 4));
    }
    return new Uint8Array(found.buffer, 0, Number(dataset.bytes));
  };
  const inflated = async (part) => {
    const stream = new Blob([bytes(packed[part])]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  const text = async (part) => new TextDecoder().decode(await inflated(part));
  Promise.all([text(0), text(1), text(2)]).then(([css, code, data]) => {
    globalThis.vidrio = { data: JSON.parse(data), numbers: () => inflated(3) };
    for (const [tag, content] of [
      ["style", css],
      ["script", code],
    ]) {
      const element = document.createElement(tag);
      element.textContent = content;
      document.head.append(element);
    }
  });
}
