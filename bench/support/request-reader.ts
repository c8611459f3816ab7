/** One HTTP/1.1 request as far as the mock upstream needs it. */
export type HttpRequest = { readonly method: string; readonly path: string; readonly body: string }

const requestBytesMax = 64 * 1024 * 1024

/**
 * Reads requests from the bytes of one connection. Bodies come with a Content-Length, as every
 * client of ours sends them; anything else is refused by throwing.
 */
export class RequestReader {
  #unread = ''

  push(chunk: Buffer): HttpRequest[] {
    this.#unread += chunk.toString('latin1')
    const requests: HttpRequest[] = []
    for (;;) {
      const request = this.#next()
      if (request === undefined) return requests
      requests.push(request)
    }
  }

  #next(): HttpRequest | undefined {
    const headEnd = this.#unread.indexOf('\r\n\r\n')
    if (headEnd === -1) return undefined
    const head = this.#unread.slice(0, headEnd)
    if (/^transfer-encoding:/im.test(head)) throw new Error('the request has no Content-Length')
    const bodyBytes = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
    if (bodyBytes > requestBytesMax) throw new Error('the request is too long')
    const bodyStart = headEnd + 4
    if (this.#unread.length < bodyStart + bodyBytes) return undefined
    const body = this.#unread.slice(bodyStart, bodyStart + bodyBytes)
    this.#unread = this.#unread.slice(bodyStart + bodyBytes)
    const [method = '', path = ''] = head.split(' ', 2)
    return { method, path, body }
  }
}
