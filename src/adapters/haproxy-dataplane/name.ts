/** The provider's name, as its errors carry it. */
export const PROVIDER = 'haproxy-dataplane'
