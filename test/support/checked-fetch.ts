import { asRecord, parseJson } from '#lib/json.ts'
import { checkMessageBeginning, checkMessageStream } from './message-frames.ts'
import { checkErrorBody, checkMessageBody } from './message-objects.ts'
import { checkBeginning, checkStream, checkTail } from './response-frames.ts'
import { checkBody, checkEvent } from './response-objects.ts'
import { checkWithStrictClient } from './strict-client.ts'
import { checkWithMessageClients } from './strict-message-clients.ts'

/**
 * `fetch` for the gateway that validates every stream by the rules of the strictest clients and
 * every object by the published document. A fault is thrown into the body, so the test that reads
 * it fails. A body that is not read to its end is validated as far as it was received.
 */
export async function checkedFetch(
  input: string | URL | Request,
  init?: RequestInit,
): Promise<Response> {
  const httpResponse = await fetch(input, init)
  const url = new URL(input instanceof Request ? input.url : input)
  if (httpResponse.body === null) return httpResponse
  if (url.pathname.startsWith('/compat/')) return checkedMessage(httpResponse)
  if (!url.pathname.startsWith('/v1/')) return httpResponse
  const type = httpResponse.headers.get('content-type') ?? ''
  if (type.startsWith('text/event-stream')) {
    const after = url.searchParams.get('starting_after')
    const from = after === null ? null : Number(after)
    return withBody(httpResponse, {
      whole: (text) => checkEventStream(text, from),
      cut: (text) => from === null && checkBeginning(text).forEach(checkEvent),
    })
  }
  if (!type.startsWith('application/json')) return httpResponse
  return withBody(httpResponse, {
    whole: async (text) => checkBody(parseJson(text)),
    cut: () => {},
  })
}

/** The same for a response of the Messages surface. */
function checkedMessage(answer: Response): Response {
  const type = answer.headers.get('content-type') ?? ''
  if (type.startsWith('text/event-stream')) {
    return withBody(answer, {
      whole: (text) => checkWithMessageClients(checkMessageStream(text)),
      cut: checkMessageBeginning,
    })
  }
  return withBody(answer, {
    whole: async (text) => {
      const body = asRecord(parseJson(text))
      if (!answer.ok) checkErrorBody(body)
      else if (body['type'] === 'message') checkMessageBody(body)
    },
    cut: () => {},
  })
}

/**
 * Throws on the first fault of a stream; `startingAfter` is null for a stream from its beginning.
 */
export async function checkEventStream(wire: string, startingAfter: number | null): Promise<void> {
  if (startingAfter !== null) {
    checkTail(wire, startingAfter).frames.forEach(checkEvent)
    return
  }
  const { frames, response } = checkStream(wire)
  frames.forEach(checkEvent)
  await checkWithStrictClient(frames, response)
}

type BodyCheck = { whole: (text: string) => Promise<void>; cut: (text: string) => void }

function withBody(answer: Response, check: BodyCheck): Response {
  const source = answer.body?.getReader()
  const decoder = new TextDecoder()
  let text = ''
  const read = async () => {
    try {
      return await source?.read()
    } catch (error) {
      check.cut(text)
      throw error
    }
  }
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const piece = await read()
        if (piece?.value !== undefined) {
          text += decoder.decode(piece.value, { stream: true })
          controller.enqueue(new Uint8Array(piece.value))
          return
        }
        await check.whole(text)
        controller.close()
      },
      async cancel(reason) {
        await source?.cancel(reason)
        check.cut(text)
      },
    },
    { highWaterMark: 0 },
  )
  const { status, statusText, headers } = answer
  return new Response(body, { status, statusText, headers })
}
