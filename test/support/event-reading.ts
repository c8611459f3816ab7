/** Reads a text/event-stream answer step by step, so that a test can act in the middle of it. */
export type EventReading = {
  /** What has arrived so far. */
  readonly text: () => string
  /** Resolves when the text so far matches. */
  until(pattern: RegExp): Promise<void>
  /** Everything, once the answer has ended; rejects when it was cut off. */
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
