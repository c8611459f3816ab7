import { type BlockEvent, endOfBlock } from '#inference/events.ts'
import type { StoredItem } from '#responses/response.ts'
import { FrameWriter } from '#surfaces/responses/frames.ts'
import { openHostedTool } from './hosted-tool.ts'
import type { ItemContext, ItemForm, ItemStatus, OpenItem } from './item.ts'
import { MessageItem } from './message.ts'
import { openReasoning } from './reasoning.ts'
import { openToolCall } from './tool-call.ts'

type ItemOptions = Omit<ItemContext, 'outputIndex' | 'frames'>

/**
 * Writes the output items of one response, one per block of the generation. The items write their frames with
 * it too: with an object of their own, each event would load one more into the cache.
 */
export class ItemWriter extends FrameWriter {
  readonly #options: ItemOptions
  readonly #closed: { item: OpenItem; status: ItemStatus }[] = []
  #current: OpenItem | null = null
  #last: BlockEvent | null = null

  constructor(options: ItemOptions, ...frames: ConstructorParameters<typeof FrameWriter>) {
    super(...frames)
    this.#options = options
  }

  pushItem(event: BlockEvent): string {
    this.#last = event
    if (this.#current === null) {
      const outputIndex = this.#closed.length
      this.#current = openItem(event, { ...this.#options, frames: this, outputIndex })
      const added = this.#itemFrame('added', this.#current, 'in_progress')
      return added + (this.#current.start?.() ?? '')
    }
    // Nearly every event.
    if (event.type === 'text-delta') return this.#current.push(event)
    return event.type.endsWith('-end') ? this.#end(this.#current, event) : this.#current.push(event)
  }

  /** Ends the open item as incomplete. */
  cutItem(): string {
    if (this.#last === null) return ''
    return endOfBlock(this.#last)
      .map((event) => this.pushItem(event))
      .join('')
  }

  /** The items so far, including the open one. */
  items(form: ItemForm): StoredItem[] {
    const items = this.#closed.map(({ item, status }) => item.item(status, form))
    return this.#current === null ? items : [...items, this.#current.item('in_progress', form)]
  }

  #end(item: OpenItem, event: BlockEvent): string {
    const status = 'complete' in event && !event.complete ? 'incomplete' : 'completed'
    const written = item.end(event) + this.#itemFrame('done', item, status)
    this.#closed.push({ item, status })
    this.#current = null
    return written
  }

  #itemFrame(stage: 'added' | 'done', item: OpenItem, status: ItemStatus): string {
    if (this.isSilent) return ''
    return this.frame(`response.output_item.${stage}`, {
      output_index: this.#closed.length,
      item: item.item(status, 'shown'),
    })
  }
}

function openItem(event: BlockEvent, context: ItemContext): OpenItem {
  switch (event.type) {
    case 'text-start':
      return new MessageItem(event, context)
    case 'reasoning-start':
      return openReasoning(event, context)
    case 'tool-call-start':
      return openToolCall(event, context)
    case 'hosted-tool-start':
      return openHostedTool(event, context)
    default:
      throw new Error(`${event.type} opens no item`)
  }
}
