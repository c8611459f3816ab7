import type { RequestItem } from '#inference/request.ts'
import type { ReasoningSeal } from '#sealing/reasoning.ts'
import { readAssistantTurn } from './assistant-turn.ts'
import { createCallBook } from './call-book.ts'
import { parseTexts } from './parse-content.ts'
import { badField, createReader, readType } from './read-object.ts'
import type { Content, Reading } from './reading.ts'
import { message } from './schema.ts'
import { createServerTools } from './server-tools.ts'
import { emptyUserTurn, itemsOfUserTurn, readUserTurn } from './user-turn.ts'

const readMessage = createReader(message)

export type ParsedMessages = {
  items: readonly RequestItem[]
  /** Whether the last message is the beginning of the answer. */
  prefilled: boolean
  leftOut: ReadonlySet<string>
}

/**
 * `messages` of a request as items. Neighbours of one role are one turn, and within a turn of the
 * user the results of tools come first, as every upstream wants them. A conversation may begin with
 * the assistant, since it may be the end of a longer one. Throws an `AppError` that names the first
 * block at fault.
 */
export function parseMessages(
  values: readonly unknown[],
  options: { seal: ReasoningSeal; itemsMax: number },
): ParsedMessages {
  const { seal, itemsMax } = options
  if (values.length === 0) throw badField('messages', 'must hold at least one message')
  if (values.length > itemsMax) throw tooMany(itemsMax)
  const reading: Reading = {
    items: [],
    calls: createCallBook(),
    serverTools: createServerTools(),
    seal,
    user: emptyUserTurn(),
    leftOut: new Set(),
  }
  let lastRole = ''
  for (const [index, value] of values.entries()) {
    const { role, content } = readMessage(value, `messages.${index}`)
    const path = `messages.${index}.content`
    if (role === 'user') {
      readUserTurn(reading, content, path)
    } else {
      endUserTurn(reading)
      const read = role === 'assistant' ? readAssistantTurn : readSystemText
      read(reading, content, path)
    }
    lastRole = role
  }
  endUserTurn(reading)
  const items = reading.serverTools.finish(reading.items)
  if (items.length > itemsMax) throw tooMany(itemsMax)
  const last = items.at(-1)
  if (last === undefined) throw badField('messages', 'must hold something that a model can read')
  const prefilled = lastRole === 'assistant' && last.type === 'message'
  return { items, prefilled, leftOut: reading.leftOut }
}

function tooMany(itemsMax: number) {
  return badField('messages', `must not hold more than ${itemsMax} messages, calls and results`)
}

function endUserTurn(reading: Reading): void {
  reading.items.push(...itemsOfUserTurn(reading.user))
  reading.user = emptyUserTurn()
}

/** Blocks that change the tools in the middle of a conversation, which is not offered here. */
const toolChanges = ['tool_addition', 'tool_removal']

function readSystemText(reading: Reading, content: Content, path: string): void {
  const texts = typeof content === 'string' ? content : withoutToolChanges(reading, content, path)
  const text = parseTexts(texts, path).join('\n\n')
  if (text === '') return
  reading.items.push({ type: 'message', role: 'system', parts: [{ type: 'text', text }] })
}

/** An empty text stays in the place of each, so that the places of the others are still right. */
function withoutToolChanges({ leftOut }: Reading, blocks: readonly unknown[], path: string) {
  return blocks.map((block, index) => {
    const type = readType(block, `${path}.${index}`)
    if (!toolChanges.includes(type)) return block
    leftOut.add(type)
    return { type: 'text', text: '' }
  })
}
