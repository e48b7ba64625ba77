/** The data of each event of a text/event-stream; null for a comment, which says: still there. */
export async function* readEvents(
  stream: ReadableStream<Uint8Array>,
): AsyncGenerator<string | null> {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      yield* parser.push(done ? decoder.decode() : decoder.decode(value, { stream: true }));
      if (done) return;
    }
  } finally {
    // Whoever stops reading stops the answer.
    reader.cancel().catch(() => undefined);
  }
}

/** Lines may end with LF, CR LF or CR, and a piece may end anywhere. */
export class EventParser {
  private rest = '';
  private data: string[] = [];

  *push(text: string): Generator<string | null> {
    this.rest += text;
    for (;;) {
      const end = this.rest.search(/[\r\n]/);
      // A CR at the very end may be the first half of a CR LF.
      if (end < 0 || (this.rest[end] === '\r' && end === this.rest.length - 1)) return;
      const line = this.rest.slice(0, end);
      const length = this.rest.startsWith('\r\n', end) ? 2 : 1;
      this.rest = this.rest.slice(end + length);
      yield* this.line(line);
    }
  }

  private *line(line: string): Generator<string | null> {
    if (line === '') {
      if (this.data.length > 0) yield this.data.join('\n');
      this.data = [];
    } else if (line.startsWith(':')) {
      yield null;
    } else if (line.startsWith('data:')) {
      this.data.push(line.slice(line[5] === ' ' ? 6 : 5));
    }
  }
}
