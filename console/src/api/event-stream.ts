/** One frame of a server-sent event stream. */
export type Frame = { readonly event: string; readonly data: string }

/** A frame larger than this is not one of ours. */
const frameCharsMax = 32 * 1024 * 1024

/** Yields the frames of a response as they arrive. */
export async function* readFrames(response: Response): AsyncGenerator<Frame> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  if (reader === undefined) return
  let pending = ''
  try {
    while (true) {
      const { done, value } = await reader.read()
      if (done) return
      pending += value.replaceAll('\r\n', '\n')
      if (pending.length > frameCharsMax) throw new Error('The stream sent a frame without an end.')
      let end = pending.indexOf('\n\n')
      while (end !== -1) {
        const frame = parseFrame(pending.slice(0, end))
        if (frame !== null) yield frame
        pending = pending.slice(end + 2)
        end = pending.indexOf('\n\n')
      }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}

function parseFrame(text: string): Frame | null {
  let event = 'message'
  const data: string[] = []
  for (const line of text.split('\n')) {
    if (line.startsWith('event:')) event = line.slice(6).trim()
    else if (line.startsWith('data:')) data.push(line.slice(5).trimStart())
  }
  return data.length === 0 ? null : { event, data: data.join('\n') }
}
