import type { Transport } from '#inference/transport.ts'
import { AppError } from '#lib/errors.ts'

/** A transport over `fetch`, so that adapters are tested apart from the product's own. */
export const fetchTransport: Transport = {
  async send(request) {
    const answer = await fetch(request.url, {
      method: request.method,
      headers: request.headers,
      signal: request.signal,
      ...(request.body === undefined ? {} : { body: request.body }),
    })
    return {
      status: answer.status,
      header: (name) => answer.headers.get(name),
      chunks: readChunks(answer, request.signal),
    }
  },
}

async function* readChunks(answer: Response, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  if (answer.body === null) return
  try {
    for await (const chunk of answer.body) yield chunk
  } catch (error) {
    if (signal.aborted) throw signal.reason
    throw new AppError('upstream_truncated', 'The upstream broke off in the middle.', {
      cause: error,
    })
  }
}
