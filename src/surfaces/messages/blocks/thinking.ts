import { assert } from '#lib/assert.ts'
import type { BlockContext, EventOf, OpenBlock } from './block.ts'

const betweenParts = '\n\n'

/**
 * Reasoning as a thinking block. Clients keep its text and its signature alone, so the signature is
 * our seal of the thoughts and of what their maker sealed. Where there is only the latter, the
 * block has no text, as where the caller wants none.
 */
export function openThinking(start: EventOf<'reasoning-start'>, context: BlockContext): OpenBlock {
  const { sink, reasoningSeal } = context
  const isShown = context.thinkingDisplay === 'summarized'
  let text = ''
  let part: number | null = null

  const opened = () =>
    sink().isOpen() ? '' : sink().start({ type: 'thinking', thinking: '', signature: '' })
  return {
    start: () => '',
    push(event) {
      assert(event.type === 'reasoning-delta', `${event.type} in reasoning`)
      if (event.text === '') return ''
      const isNewPart = text !== '' && event.part !== part
      const added = isNewPart ? betweenParts + event.text : event.text
      part = event.part
      text += added
      return isShown ? opened() + sink().delta('thinking_delta', added) : opened()
    },
    end(event) {
      assert(event.type === 'reasoning-end', `${event.type} ends reasoning`)
      const { sealed: payload = null, sealedBy: maker = null } = event
      if (text === '' && payload === null) return sink().stop()
      // A summary is not what the model thought, so it is nothing to give back to it.
      const thoughts = start.form === 'summary' ? '' : text
      const signature = reasoningSeal.seal({ text: thoughts, payload, maker })
      return opened() + sink().delta('signature_delta', signature) + sink().stop()
    },
  }
}
