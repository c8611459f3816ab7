import { describe, expect, test } from 'bun:test'
import { isBrowserMissing } from '#test/support/browser.ts'
import { useConsole } from '#test/support/console.ts'

describe.skipIf(isBrowserMissing)('the playground in a browser (needs chromium)', () => {
  const { open: openPage } = useConsole()

  const answer = `[...document.querySelectorAll('.answer')].at(-1)?.innerText ?? ''`
  const openPlayground = async () => {
    const opened = await openPage()
    await opened.open('/playground', 'Playground')
    const ask = async (text: string) => {
      await opened.fill('Message', text)
      await opened.page.keyboard.press('Enter')
    }
    const answers = async (text: string) => {
      await opened.page.waitForFunction(`(${answer}).includes(${JSON.stringify(text)})`)
    }
    const selectModel = async (model: string) => {
      await opened.page.waitForFunction(
        `[...document.querySelectorAll('option')].some(({ value }) => value === '${model}')`,
      )
      await opened.choose('Model or agent', model)
    }
    return { ...opened, ask, answers, selectModel }
  }

  test.each(['Responses', 'Messages'])(
    'over %s an answer streams with reasoning, and the conversation continues',
    async (surface) => {
      const { page, faults, press, ask, answers, selectModel, shows, expectAccessible } =
        await openPlayground()
      await selectModel('demo-reasoning')
      await press(surface)
      await ask('What is a weir?')
      await answers('Reasoning')
      await answers('You said: What is a weir?')
      await answers('tokens/s')
      await answers('first token')
      await ask('And a lock?')
      await answers('You said: And a lock?')
      await press('Events and code')
      await shows(surface === 'Responses' ? 'response.created' : 'message_start')
      await press('curl')
      await shows(surface === 'Responses' ? '/v1/responses' : '/compat/v1/messages')
      await expectAccessible()
      expect(faults).toEqual([])
      await page.close()
    },
  )

  test.each(['Responses', 'Messages'])(
    'over %s a tool call shows its arguments, and goes on with the result',
    async (surface) => {
      const { page, faults, press, fill, ask, answers, selectModel } = await openPlayground()
      await selectModel('demo-tools')
      await press(surface)
      await page.evaluate(
        `[...document.querySelectorAll('summary')].find((one) => one.textContent === 'Tools').click()`,
      )
      await press('Insert an example')
      await ask('How is the weather?')
      await answers('get_weather')
      await fill('Result of get_weather', '21 degrees')
      await press('Send the result')
      await answers('21 degrees')
      expect(faults).toEqual([])
      await page.close()
    },
  )

  test('a stored answer continues after a reload of the page', async () => {
    const { page, faults, ask, answers, selectModel } = await openPlayground()
    await selectModel('demo-long')
    await ask('Tell a long story')
    await answers('demo-long')
    await page.waitForFunction(`(${answer}).includes('1 2 3 4')`)
    await page.reload({ waitUntil: 'domcontentloaded' })
    await answers('Resumed after a reload')
    // The beginning again, and what followed.
    await page.waitForFunction(`/1 2 3 4 [\\d ]*1[0-9] /.test(${answer})`)
    await page.evaluate(
      `[...document.querySelectorAll('button')].find((one) => one.textContent === 'Stop').click()`,
    )
    await answers('stopped')
    expect(faults).toEqual([])
    await page.close()
  })

  test('a failure says what happened', async () => {
    const { page, ask, answers, selectModel, expectAccessible } = await openPlayground()
    await selectModel('demo-fail')
    await ask('Hello')
    await answers('upstream_error')
    await expectAccessible()
    await page.close()
  })

  test('an image and a file are sent with the question', async () => {
    const { page, ask, answers } = await openPlayground()
    const picker = await page.waitForSelector('.composer input[type=file]')
    const file = new URL('../../console/src/icon.svg', import.meta.url).pathname
    // biome-ignore lint/suspicious/noExplicitAny: the handle has the type of its element only in a DOM
    await (picker as any).uploadFile(file)
    await page.waitForSelector('.attachments .tag')
    const sent = page.waitForRequest((request) => request.url().endsWith('/v1/responses'))
    await ask('What is this?')
    expect((await sent).postData()).toContain('data:image/svg+xml;base64,')
    await answers('demo')
    await page.close()
  })
})
