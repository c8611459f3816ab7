export type HeapItem = {
  /** Its place in the heap; -1 outside. Only the heap writes it. */
  heapIndex: number
}

/** A binary heap whose items know their place, so that any of them is removed in O(log n). */
export class IndexedHeap<Item extends HeapItem> {
  readonly #items: Item[] = []
  readonly #isBefore: (left: Item, right: Item) => boolean

  constructor(isBefore: (left: Item, right: Item) => boolean) {
    this.#isBefore = isBefore
  }

  get size(): number {
    return this.#items.length
  }

  get first(): Item | undefined {
    return this.#items[0]
  }

  add(item: Item) {
    this.#place(item, this.#items.length)
    this.#rise(item)
  }

  /** Does nothing for an item that is not in the heap. */
  remove(item: Item) {
    const at = item.heapIndex
    if (at < 0) return
    item.heapIndex = -1
    const last = this.#items.pop()
    if (last === undefined || last === item) return
    this.#place(last, at)
    this.update(last)
  }

  /** After a change of what the order depends on. */
  update(item: Item) {
    this.#rise(item)
    this.#sink(item)
  }

  #rise(item: Item) {
    while (item.heapIndex > 0) {
      const at = item.heapIndex
      const parentAt = (at - 1) >> 1
      const parent = this.#items[parentAt]
      if (parent === undefined || !this.#isBefore(item, parent)) return
      this.#place(parent, at)
      this.#place(item, parentAt)
    }
  }

  #sink(item: Item) {
    for (;;) {
      const at = item.heapIndex
      const left = this.#items[2 * at + 1]
      const right = this.#items[2 * at + 2]
      const child =
        left !== undefined && right !== undefined && this.#isBefore(right, left) ? right : left
      if (child === undefined || !this.#isBefore(child, item)) return
      const childAt = child.heapIndex
      this.#place(child, at)
      this.#place(item, childAt)
    }
  }

  #place(item: Item, at: number) {
    this.#items[at] = item
    item.heapIndex = at
  }
}
