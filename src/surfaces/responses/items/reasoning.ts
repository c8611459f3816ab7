import { assert } from '#lib/assert.ts'
import { newId } from '#lib/id.ts'
import { deltaHead } from '#surfaces/responses/frames.ts'
import type { EventOf, ItemContext, OpenItem } from './item.ts'

export function openReasoning(
  start: EventOf<'reasoning-start'>,
  { frames, outputIndex, includeSealed }: ItemContext,
): OpenItem {
  const id = newId('rs_')
  const parts: string[] = []
  let head = deltaHead('', {})
  let openPart: number | null = null
  let sealed: string | undefined

  const place = () => ({ item_id: id, output_index: outputIndex, summary_index: parts.length - 1 })
  const summaryPart = (text: string) => ({ type: 'summary_text', text })
  const item = () => ({
    id,
    type: 'reasoning',
    summary: parts.map(summaryPart),
    // What the model itself thought goes back whole, so that a replay can give it to the model.
    ...(start.form === 'summary' || parts.length === 0
      ? {}
      : { content: [{ type: 'reasoning_text', text: parts.join('\n\n') }] }),
    ...(sealed !== undefined && includeSealed ? { encrypted_content: sealed } : {}),
  })
  const closePart = () => {
    if (openPart === null) return ''
    openPart = null
    const text = parts.at(-1) ?? ''
    return (
      frames.frame('response.reasoning_summary_text.done', { ...place(), text }) +
      frames.frame('response.reasoning_summary_part.done', { ...place(), part: summaryPart(text) })
    )
  }
  const startPart = (part: number) => {
    const closed = closePart()
    openPart = part
    parts.push('')
    head = deltaHead('response.reasoning_summary_text.delta', place())
    return (
      closed +
      frames.frame('response.reasoning_summary_part.added', { ...place(), part: summaryPart('') })
    )
  }
  return {
    start: () =>
      frames.frame('response.output_item.added', { output_index: outputIndex, item: item() }),
    push(event) {
      assert(event.type === 'reasoning-delta', `${event.type} in reasoning`)
      const opened = event.part === openPart ? '' : startPart(event.part)
      parts[parts.length - 1] += event.text
      return opened + frames.delta(head, event.text)
    },
    end(event) {
      assert(event.type === 'reasoning-end', `${event.type} ends reasoning`)
      sealed = event.sealed
      return (
        closePart() +
        frames.frame('response.output_item.done', { output_index: outputIndex, item: item() })
      )
    },
    item,
  }
}
