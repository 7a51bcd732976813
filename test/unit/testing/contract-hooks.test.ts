import { describe, expect, test } from 'vitest'
import type { CallContext, DrainableProvider } from 'drainable/provider'
import { providerContract, type FakeProvider } from 'drainable/testing'
import { broken, openFake } from './fake-harness.js'

describe('a case without its hook', () => {
  const lost = () => {
    const cases = providerContract(async () => {
      const harness = await openFake()
      delete (harness as { loseAnswer?: unknown }).loseAnswer
      return harness
    })
    return cases.find(({ name }) => /a completed change as refused/.test(name))!
  }

  test('is skipped through the context, with the reason', async () => {
    const said: string[] = []
    await lost().run({ skip: (reason) => said.push(reason) })
    expect(said).toEqual(['the harness has no loseAnswer'])
  })

  test('throws the reason if the runner gives no context', async () => {
    await expect(lost().run()).rejects.toThrow('the harness has no loseAnswer')
  })

  test('takes no parameter that a runner could take for its callback', () => {
    expect(lost().run).toHaveLength(0)
  })
})

describe('a provider that knows a secret', () => {
  const TOKEN = 'token-4f71c2a09d'
  const telling = (error: () => unknown) => (fake: FakeProvider) =>
    broken(fake, { observe: () => Promise.reject(error()) })
  const run = async (wrap: (fake: FakeProvider) => DrainableProvider): Promise<void> => {
    const cases = providerContract(async () => ({
      ...(await openFake({}, wrap)),
      secrets: () => [TOKEN],
    }))
    await cases.find(({ name }) => name.startsWith('shows no password'))!.run()
  }

  test('passes if it keeps the secret', async () => {
    await run((fake) => fake)
  })

  test.each([
    ['in a message', () => new Error(`refused: ${TOKEN}`)],
    ['in a cause', () => new Error('refused', { cause: new Error(TOKEN) })],
    ['in a field', () => Object.assign(new Error('refused'), { request: { auth: TOKEN } })],
    [
      'in a hidden field',
      () => Object.defineProperty(new Error('refused'), 'auth', { value: TOKEN }),
    ],
  ])('fails if it shows the secret %s, and the failure does not', async (_, error) => {
    const found: unknown = await run(telling(error)).catch((thrown: unknown) => thrown)
    expect(String(found)).toMatch(/a secret of 16 characters is shown/)
    expect(String(found)).not.toContain(TOKEN)
  })
})

describe('a provider that waits by a clock of its own', () => {
  const slow = (fake: FakeProvider, verb: 'observe' | 'apply') => {
    const late = async <T>(call: Promise<T>, { signal }: CallContext): Promise<T> => {
      await new Promise((resolve) => setTimeout(resolve, 3_000, signal).unref())
      return call
    }
    return broken(fake, {
      ...(verb === 'observe' && { observe: (refs, ctx) => late(fake.observe(refs, ctx), ctx) }),
      ...(verb === 'apply' && { apply: (list, ctx) => late(fake.apply(list, ctx), ctx) }),
    })
  }

  test('fails the case about changes', async () => {
    const cases = providerContract(async () => ({
      ...(await openFake({}, (fake) => slow(fake, 'apply'))),
      timeScale: 0.05,
    }))
    const judge = cases.find(({ name }) => name.startsWith('makes its changes by the clock'))!
    await expect(judge.run()).rejects.toThrow(/within 50 ms/)
  })
})
