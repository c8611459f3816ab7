/** The parts of an HTTP/1.1 request that the mock upstream needs. */
export type HttpRequest = { readonly method: string; readonly path: string; readonly body: string }

const requestBytesMax = 64 * 1024 * 1024

/** A request with a complete head and `bytesLeft` of its body missing. */
type PendingRequest = { readonly method: string; readonly path: string; bytesLeft: number }

/** Parses requests of one connection. Bodies need a Content-Length; anything else throws. */
export class RequestReader {
  #head = ''
  #begun: PendingRequest | undefined
  /** Joined once the body is complete, to avoid copying. */
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

  /** Returns the bytes after the head. */
  #readHead(text: string): string {
    this.#head += text
    const headEnd = this.#head.indexOf('\r\n\r\n')
    if (headEnd === -1) return ''
    const head = this.#head.slice(0, headEnd)
    const rest = this.#head.slice(headEnd + 4)
    this.#head = ''
    if (/^transfer-encoding:/im.test(head)) throw new Error('the request has no Content-Length')
    const bytesLeft = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
    if (bytesLeft > requestBytesMax) throw new Error('request too long')
    const [method = '', target = ''] = head.split(' ', 2)
    this.#begun = { method, path: target.replace(/\?.*$/, ''), bytesLeft }
    return rest
  }

  /** Returns the bytes after the body. */
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
