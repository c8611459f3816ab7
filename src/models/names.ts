import { isUuid } from '#lib/uuid.ts'

/** A suffix by which clients request a context window of a million tokens; not part of the name. */
export const longContextMark = '[1m]'

export type ModelNames = ReturnType<typeof createModelNames>

/**
 * Prefixed names of models and agents, besides the plain names of models: some clients list only
 * names with a certain prefix.
 */
export function createModelNames({ prefix }: { prefix: string }) {
  const modelPrefix = `${prefix}-model-`
  const agentPrefix = `${prefix}-agent-`
  return {
    ofModel: (id: string) => modelPrefix + id,
    ofAgent: (id: string) => agentPrefix + id,
    /** The catalogue names that a name may stand for; the name itself first. */
    spellings(name: string): readonly string[] {
      if (!name.startsWith(modelPrefix) && !name.endsWith(longContextMark)) return [name]
      const names = [name, withoutSuffix(name)]
      return [...new Set([...names, ...names.map((each) => withoutPrefix(each, modelPrefix))])]
    },
    /** The id in an agent name; undefined for other names. */
    agentIdIn(name: string): string | undefined {
      const id = withoutPrefix(withoutSuffix(name), agentPrefix).toLowerCase()
      return isUuid(id) ? id : undefined
    },
  }
}

function withoutSuffix(name: string): string {
  return name.endsWith(longContextMark) ? name.slice(0, -longContextMark.length) : name
}

function withoutPrefix(name: string, prefix: string): string {
  return name.startsWith(prefix) ? name.slice(prefix.length) : name
}
