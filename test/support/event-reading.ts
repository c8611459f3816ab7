/** Reads a text/event-stream response step by step, so that a test can act in the middle of it. */
export type EventReading = {
  /** The received text so far. */
  readonly text: () => string
  /** Resolves when the received text matches. */
  until(pattern: RegExp): Promise<void>
  /** The whole text, after the response ended; rejects if it was truncated. */
  whole(): Promise<string>
}

export function readEvents(answer: Response): EventReading {
  if (answer.body === null) throw new Error('the answer has no body')
  const reader = answer.body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  const readOn = async (): Promise<boolean> => {
    const { value, done } = await reader.read()
    text += decoder.decode(value, { stream: !done })
    return !done
  }
  return {
    text: () => text,
    async until(pattern) {
      while (!pattern.test(text)) {
        if (!(await readOn())) throw new Error(`the stream ended without ${pattern}:\n${text}`)
      }
    },
    async whole() {
      while (await readOn());
      return text
    },
  }
}
