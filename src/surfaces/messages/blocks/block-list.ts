import type { BlockEvent } from '#inference/events.ts'
import { endOfBlock } from '#inference/grammar.ts'
import type { BlockContext, BlockSink, OpenBlock } from './block.ts'
import { hiddenBlock, openHostedTool } from './hosted-tool.ts'
import { TextBlock } from './text.ts'
import { ThinkingBlock } from './thinking.ts'
import { ToolUseBlock } from './tool-use.ts'

/** The blocks of one message, one at a time. */
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

  /** Ends the open block as incomplete. */
  cut(sink: BlockSink): string {
    if (this.#last === null) return ''
    return endOfBlock(this.#last)
      .map((event) => this.push(sink, event))
      .join('')
  }

  /**
   * Continues after relayed frames, which may have left a block open. Returns whether that block can be
   * continued. A hosted tool cannot, since its frames differ, nor can thinking whose frames have ended:
   * its events end later.
   */
  takeOver(leftOpen: boolean): boolean {
    if (this.#current === null || this.#last === null) return false
    const { type } = this.#last
    const isThinking = type.startsWith('reasoning')
    if (type.startsWith('hosted-tool') || (isThinking && !leftOpen)) this.#current = hiddenBlock
    return this.#current !== hiddenBlock
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
