/**
 * The names of models and agents beside the bare name of a model: with a prefix that says which of
 * the two it is, since some clients list only names that begin with a word of their own.
 */
export type ModelNames = {
  ofModel(id: string): string
  ofAgent(id: string): string
  /** Under which names of the catalogue a model may be meant, the name as it stands first. */
  spellings(name: string): readonly string[]
  /** The id of the agent that is meant; undefined for what cannot be the name of an agent. */
  agentIdIn(name: string): string | undefined
}

/** Clients mark with it that they count on a window of a million tokens; it is no part of a name. */
export const longContextMark = '[1m]'

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function createModelNames({ prefix }: { prefix: string }): ModelNames {
  const modelPrefix = `${prefix}-model-`
  const agentPrefix = `${prefix}-agent-`
  return {
    ofModel: (id) => modelPrefix + id,
    ofAgent: (id) => agentPrefix + id,
    spellings(name) {
      const names = [name, withoutMark(name)]
      return [...new Set([...names, ...names.map((each) => withoutPrefix(each, modelPrefix))])]
    },
    agentIdIn(name) {
      const id = withoutPrefix(withoutMark(name), agentPrefix).toLowerCase()
      return uuid.test(id) ? id : undefined
    },
  }
}

function withoutMark(name: string): string {
  return name.endsWith(longContextMark) ? name.slice(0, -longContextMark.length) : name
}

function withoutPrefix(name: string, prefix: string): string {
  return name.startsWith(prefix) ? name.slice(prefix.length) : name
}

/** A name in a path. One that is not properly encoded is looked up as it stands, and not found. */
export function decodeName(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
