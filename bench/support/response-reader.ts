export type ResponseHandlers = {
  onHead(status: number): void
  onBody(text: string): void
  onEnd(): void
}

/** Parser state. */
type Part = 'head' | 'sized-body' | 'chunk-size' | 'chunk' | 'chunk-end' | 'trailer'

/**
 * Parses HTTP/1.1 responses of one connection, with Content-Length or chunked. Text is Latin-1,
 * one character per byte: all traffic of the benchmarks is ASCII.
 */
export class ResponseReader {
  readonly #handlers: ResponseHandlers
  #unread = ''
  #part: Part = 'head'
  #bytesLeft = 0

  constructor(handlers: ResponseHandlers) {
    this.#handlers = handlers
  }

  push(chunk: Buffer): void {
    this.#unread += chunk.toString('latin1')
    while (this.#step()) {
      // Each step consumes one part and returns false if it needs more bytes.
    }
  }

  #step(): boolean {
    switch (this.#part) {
      case 'head':
        return this.#readHead()
      case 'sized-body':
        return this.#readBody('head')
      case 'chunk-size':
        return this.#readChunkSize()
      case 'chunk':
        return this.#readBody('chunk-end')
      case 'chunk-end':
        return this.#readLine() !== undefined && this.#goTo('chunk-size')
      case 'trailer':
        return this.#readTrailer()
    }
  }

  #readHead(): boolean {
    const end = this.#unread.indexOf('\r\n\r\n')
    if (end === -1) return false
    const head = this.#unread.slice(0, end)
    this.#unread = this.#unread.slice(end + 4)
    this.#handlers.onHead(Number(head.slice(9, 12)))
    if (/^transfer-encoding: *chunked/im.test(head)) return this.#goTo('chunk-size')
    this.#bytesLeft = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
    if (this.#bytesLeft === 0) return this.#end()
    return this.#goTo('sized-body')
  }

  #readChunkSize(): boolean {
    const line = this.#readLine()
    if (line === undefined) return false
    this.#bytesLeft = Number.parseInt(line, 16)
    if (Number.isNaN(this.#bytesLeft)) throw new Error('invalid chunk size')
    return this.#goTo(this.#bytesLeft === 0 ? 'trailer' : 'chunk')
  }

  #readBody(next: 'head' | 'chunk-end'): boolean {
    if (this.#unread.length === 0) return false
    const text = this.#unread.slice(0, this.#bytesLeft)
    this.#unread = this.#unread.slice(text.length)
    this.#bytesLeft -= text.length
    this.#handlers.onBody(text)
    if (this.#bytesLeft > 0) return false
    return next === 'head' ? this.#end() : this.#goTo(next)
  }

  #readTrailer(): boolean {
    const line = this.#readLine()
    if (line === undefined) return false
    return line === '' ? this.#end() : true
  }

  #readLine(): string | undefined {
    const end = this.#unread.indexOf('\r\n')
    if (end === -1) return undefined
    const line = this.#unread.slice(0, end)
    this.#unread = this.#unread.slice(end + 2)
    return line
  }

  #end(): boolean {
    this.#part = 'head'
    this.#handlers.onEnd()
    return this.#unread.length > 0
  }

  #goTo(part: Part): true {
    this.#part = part
    return true
  }
}
