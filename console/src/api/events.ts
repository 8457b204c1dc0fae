/** Server-sent events out of a stream of bytes. */
export interface ServerEvent {
  name: string;
  id: string | null;
  data: unknown;
}

export async function* parseEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<ServerEvent> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let left = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      left += decoder.decode(value, { stream: true });
      let at: number;
      while ((at = left.indexOf("\n\n")) >= 0) {
        const found = readEvent(left.slice(0, at));
        left = left.slice(at + 2);
        if (found) yield found;
      }
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

/** One block of lines; null for a comment, which is a heartbeat. */
export function readEvent(block: string): ServerEvent | null {
  let name = "message";
  let id: string | null = null;
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("id: ")) id = line.slice(4);
    else if (line.startsWith("data: ")) data.push(line.slice(6));
  }
  return data.length ? { name, id, data: JSON.parse(data.join("\n")) as unknown } : null;
}
