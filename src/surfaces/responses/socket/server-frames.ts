import { renderError } from '#http/error-envelope.ts'
import type { AppError } from '#lib/errors.ts'

/** How the events of a turn ended: null while its last one is still to come. */
export type TurnEnding = 'over' | 'failed' | null

export type SocketFrames = { readonly frames: string[]; readonly ending: TurnEnding }

const dataMark = '\ndata: '
const endings: readonly (readonly [first: string, ending: TurnEnding])[] = [
  ['event: response.completed\n', 'over'],
  ['event: response.incomplete\n', 'over'],
  ['event: response.failed\n', 'failed'],
]

/** Server-sent events as frames of a socket: each is the JSON of one event, which says its type. */
export function toSocketFrames(events: string, streamId: string | null): SocketFrames {
  const frames: string[] = []
  let ending: TurnEnding = null
  for (let at = 0; at < events.length; ) {
    const data = events.indexOf(dataMark, at)
    const end = events.indexOf('\n\n', data)
    if (data === -1 || end === -1) throw new Error('an event is not whole')
    frames.push(withStreamId(events.slice(data + dataMark.length, end), streamId))
    ending = endings.find(([first]) => events.startsWith(first, at))?.[1] ?? ending
    at = end + 2
  }
  return { frames, ending }
}

/** Tells of a failure before the first event of a turn, or outside of any. */
export function errorFrame(error: AppError, streamId: string | null): string {
  return withStreamId(
    JSON.stringify({ type: 'error', status: error.status, ...renderError(error) }),
    streamId,
  )
}

/** `json` is an object that has a field. */
function withStreamId(json: string, streamId: string | null): string {
  return streamId === null ? json : `${json.slice(0, -1)},"stream_id":${JSON.stringify(streamId)}}`
}
