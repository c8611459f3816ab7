import type { BlockEvent } from '#inference/events.ts'
import { endOfBlock } from '#inference/grammar.ts'
import type { BlockContext, BlockSink, OpenBlock } from './block.ts'
import { openHostedTool, untold } from './hosted-tool.ts'
import { TextBlock } from './text.ts'
import { ThinkingBlock } from './thinking.ts'
import { ToolUseBlock } from './tool-use.ts'

/** The blocks of one message, in order, one at a time. */
export class BlockList {
  readonly #context: BlockContext
  #current: OpenBlock | null = null
  #last: BlockEvent | null = null

  constructor(context: BlockContext) {
    this.#context = context
  }

  push(sink: BlockSink, event: BlockEvent): string {
    this.#last = event
    const current = this.#current
    if (current === null) return this.#start(sink, event)
    if (!event.type.endsWith('-end')) return current.push(sink, event)
    const written = current.end(sink, event)
    this.#current = null
    return written
  }

  /** Ends the block that is still open, as one that was cut off. */
  cut(sink: BlockSink): string {
    if (this.#last === null) return ''
    return endOfBlock(this.#last)
      .map((event) => this.push(sink, event))
      .join('')
  }

  /**
   * Goes on where another writer ended, who left a block open or none: whether that block goes on
   * here. A hosted tool does not, because the other told it in its own way, nor does thinking that it
   * ended: events say so later than frames do.
   */
  takeOver(leftOpen: boolean): boolean {
    if (this.#current === null || this.#last === null) return false
    const { type } = this.#last
    const isThinking = type.startsWith('reasoning')
    if (type.startsWith('hosted-tool') || (isThinking && !leftOpen)) this.#current = untold
    return this.#current !== untold
  }

  #start(sink: BlockSink, event: BlockEvent): string {
    this.#current = openBlock(event, this.#context)
    return this.#current.start(sink)
  }
}

function openBlock(event: BlockEvent, context: BlockContext): OpenBlock {
  switch (event.type) {
    case 'text-start':
      return new TextBlock(event, context)
    case 'reasoning-start':
      return new ThinkingBlock(event, context)
    case 'tool-call-start':
      return new ToolUseBlock(event, context)
    case 'hosted-tool-start':
      return openHostedTool(event, context)
    default:
      throw new Error(`${event.type} opens no block`)
  }
}
