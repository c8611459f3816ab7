/** One HTTP/1.1 request as far as the mock upstream needs it. */
export type HttpRequest = { readonly method: string; readonly path: string; readonly body: string }

const requestBytesMax = 64 * 1024 * 1024

/** A request whose head has come; `bytesLeft` of its body have not. */
type Begun = { readonly method: string; readonly path: string; bytesLeft: number }

/**
 * Reads requests from the bytes of one connection. Bodies come with a Content-Length, as every
 * client of ours sends them; anything else is refused by throwing.
 */
export class RequestReader {
  #head = ''
  #begun: Begun | undefined
  /** Joined only when the body is whole, so that megabytes are not moved again and again. */
  #body: string[] = []

  push(chunk: Buffer): HttpRequest[] {
    const requests: HttpRequest[] = []
    let unread = chunk.toString('latin1')
    while (unread !== '') {
      unread = this.#begun === undefined ? this.#readHead(unread) : this.#readBody(unread)
      const request = this.#takeWhole()
      if (request !== undefined) requests.push(request)
    }
    return requests
  }

  /** Gives what comes after the head. */
  #readHead(text: string): string {
    this.#head += text
    const headEnd = this.#head.indexOf('\r\n\r\n')
    if (headEnd === -1) return ''
    const head = this.#head.slice(0, headEnd)
    const rest = this.#head.slice(headEnd + 4)
    this.#head = ''
    if (/^transfer-encoding:/im.test(head)) throw new Error('the request has no Content-Length')
    const bytesLeft = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
    if (bytesLeft > requestBytesMax) throw new Error('the request is too long')
    const [method = '', target = ''] = head.split(' ', 2)
    this.#begun = { method, path: target.replace(/\?.*$/, ''), bytesLeft }
    return rest
  }

  /** Gives what comes after the body. */
  #readBody(text: string): string {
    const begun = this.#begun
    if (begun === undefined) return text
    const part = text.slice(0, begun.bytesLeft)
    this.#body.push(part)
    begun.bytesLeft -= part.length
    return text.slice(part.length)
  }

  #takeWhole(): HttpRequest | undefined {
    const begun = this.#begun
    if (begun === undefined || begun.bytesLeft > 0) return undefined
    const body = this.#body.join('')
    this.#begun = undefined
    this.#body = []
    return { method: begun.method, path: begun.path, body }
  }
}
