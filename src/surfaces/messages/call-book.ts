import { quote } from '#surfaces/read-object.ts'
import { badField } from './read-object.ts'

/** Which calls of tools still want their result. */
export type CallBook = {
  open(id: string, path: string): void
  answer(id: string, path: string): void
}

/**
 * An id may come again once its call was answered: gateways exist that number the calls of each turn
 * anew, and a conversation that came from one must be able to go on.
 */
export function createCallBook(): CallBook {
  const states = new Map<string, 'open' | 'answered'>()
  return {
    open(id, path) {
      if (states.get(id) === 'open') {
        throw badField(path, `is ${quote(id)} a second time; ids of tool_use must be unique`)
      }
      states.set(id, 'open')
    },
    answer(id, path) {
      const state = states.get(id)
      if (state === 'answered') throw badField(path, `is ${quote(id)}, which has a result already`)
      if (state === undefined) {
        throw badField(path, `is ${quote(id)}, but no tool_use before it has this id`)
      }
      states.set(id, 'answered')
    },
  }
}
