/** The parts in use; the types of the package name another module. */
declare module '@mixmark-io/domino' {
  export type DomNode = {
    readonly nodeType: number
    readonly textContent: string | null
    remove(): void
  }
  export type DomElement = DomNode & {
    readonly tagName: string
    readonly childNodes: ArrayLike<DomNode>
    getAttribute(name: string): string | null
    hasAttribute(name: string): boolean
    querySelectorAll(selector: string): ArrayLike<DomElement>
  }
  export function createDocument(html: string): Pick<DomElement, 'querySelectorAll'> & {
    readonly documentElement: DomElement
  }
}
