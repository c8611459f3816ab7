/**
 * A model that is whole on this machine. The disk is the only record: a folder for each model under
 * the installer's folder, named by `encodeURIComponent` of its name, with its files and, written
 * last, `model.json`, which says this.
 */
export type InstalledModel = {
  /** As callers name it: `org/name` or `name`. */
  readonly name: string
  readonly source: string
  readonly revision: string | null
  readonly files: readonly InstalledFile[]
  readonly bytes: number
  /** Whether each file has the hash that its source said. */
  readonly isVerified: boolean
  readonly installedAt: string
}

export type InstalledFile = {
  /** Relative to the model's folder. */
  readonly path: string
  readonly bytes: number
  readonly sha256: string
}

/** What others need to know of installed models. */
export type InstalledModels = {
  list(): Promise<readonly InstalledModel[]>
  /** Absolute. */
  pathOf(model: InstalledModel, file: InstalledFile): string
}

/** Who uses an installed model at this moment, as sentences for people; none: it can be deleted. */
export type ModelUses = (name: string) => Promise<readonly string[]>
