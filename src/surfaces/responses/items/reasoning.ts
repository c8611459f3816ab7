import { assert } from '#lib/assert.ts'
import { newId } from '#lib/id.ts'
import { deltaHead } from '#surfaces/responses/frames.ts'
import type { EventOf, ItemContext, OpenItem } from './item.ts'

export function openReasoning(
  start: EventOf<'reasoning-start'>,
  { frames, outputIndex, includeSealed, reasoningSeal }: ItemContext,
): OpenItem {
  const id = newId('rs_')
  const parts: string[] = []
  let head = deltaHead('', {})
  let openPart: number | null = null
  let ending: EventOf<'reasoning-end'> | null = null
  let sealed: string | undefined

  const place = () => ({ item_id: id, output_index: outputIndex, summary_index: parts.length - 1 })
  const summaryPart = (text: string) => ({ type: 'summary_text', text })
  /** The reasoning itself, which can be returned to the model. */
  const rawText = () =>
    start.form === 'summary' ? '' : parts.filter((part) => part !== '').join('\n\n')
  const seal = (): string | undefined => {
    if (sealed !== undefined || ending === null) return sealed
    const { sealed: payload = null, sealedBy: maker = null } = ending
    const text = rawText()
    if (text !== '' || payload !== null) sealed = reasoningSeal.seal({ text, payload, maker })
    return sealed
  }
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
    push(event) {
      assert(event.type === 'reasoning-delta', `${event.type} in reasoning`)
      const opened = event.part === openPart ? '' : startPart(event.part)
      parts[parts.length - 1] += event.text
      return opened + frames.delta(head, event.text)
    },
    end(event) {
      assert(event.type === 'reasoning-end', `${event.type} ends reasoning`)
      ending = event
      return closePart()
    },
    item(_, form) {
      const text = form === 'shown' && includeSealed ? '' : rawText()
      const encrypted = form === 'stored' || includeSealed ? seal() : undefined
      return {
        id,
        type: 'reasoning',
        summary: parts.map(summaryPart),
        ...(text === '' ? {} : { content: [{ type: 'reasoning_text', text }] }),
        ...(encrypted === undefined ? {} : { encrypted_content: encrypted }),
      }
    },
  }
}
