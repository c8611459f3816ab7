/**
 * Prefixed names of models and agents, besides the plain names of models: some clients list only
 * names with a certain prefix.
 */
export type ModelNames = {
  ofModel(id: string): string
  ofAgent(id: string): string
  /** The catalogue names that a name may stand for; the name itself first. */
  spellings(name: string): readonly string[]
  /** The id in an agent name; undefined for other names. */
  agentIdIn(name: string): string | undefined
}

/** A suffix by which clients request a context window of a million tokens; not part of the name. */
export const longContextMark = '[1m]'

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export function createModelNames({ prefix }: { prefix: string }): ModelNames {
  const modelPrefix = `${prefix}-model-`
  const agentPrefix = `${prefix}-agent-`
  return {
    ofModel: (id) => modelPrefix + id,
    ofAgent: (id) => agentPrefix + id,
    spellings(name) {
      const names = [name, withoutSuffix(name)]
      return [...new Set([...names, ...names.map((each) => withoutPrefix(each, modelPrefix))])]
    },
    agentIdIn(name) {
      const id = withoutPrefix(withoutSuffix(name), agentPrefix).toLowerCase()
      return uuid.test(id) ? id : undefined
    },
  }
}

function withoutSuffix(name: string): string {
  return name.endsWith(longContextMark) ? name.slice(0, -longContextMark.length) : name
}

function withoutPrefix(name: string, prefix: string): string {
  return name.startsWith(prefix) ? name.slice(prefix.length) : name
}

/** Decodes a name in a path. An invalid encoding is returned unchanged, and not found. */
export function decodeName(path: string): string {
  try {
    return decodeURIComponent(path)
  } catch {
    return path
  }
}
