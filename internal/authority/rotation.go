package authority

import (
	"bytes"
	"cmp"
	"crypto/x509"
	"slices"
	"time"
)

// authorities are an installation's certificate authorities. They are never changed in
// place.
type authorities struct {
	// active signs new certificates.
	active *signer
	// next succeeds active; nil if active has no successor yet.
	next *signer
	// nextSince is when all bundles contained next for the first time. It is zero until
	// then.
	nextSince time.Time
	// previous are the replaced authorities. No certificate that they signed is valid after
	// previousUntil.
	previous      []*x509.Certificate
	previousUntil time.Time
}

// maxPrevious limits the replaced authorities in a bundle, for a clock that keeps
// jumping.
const maxPrevious = 4

// newAuthorities creates the first certificate authority.
func newAuthorities(now time.Time) (*authorities, error) {
	active, err := newSigner(now)
	if err != nil {
		return nil, err
	}
	return &authorities{active: active}, nil
}

// trusted returns all authorities, sorted by when they begin. Their order does not
// change when a successor takes over, so that the bundle stays the same.
func (s *authorities) trusted() []*x509.Certificate {
	all := append([]*x509.Certificate{s.active.certificate}, s.previous...)
	if s.next != nil {
		all = append(all, s.next.certificate)
	}
	slices.SortFunc(all, func(x, y *x509.Certificate) int {
		return cmp.Or(x.NotBefore.Compare(y.NotBefore), bytes.Compare(x.Raw, y.Raw))
	})
	return all
}

// bundle returns all authorities as PEM.
func (s *authorities) bundle() []byte { return encodeCertificates(s.trusted()...) }

// pool returns all authorities as a certificate pool.
func (s *authorities) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	for _, c := range s.trusted() {
		pool.AddCert(c)
	}
	return pool
}

// hasBundle reports whether the text is the bundle.
func (s *authorities) hasBundle(text []byte) bool { return bytes.Equal(s.bundle(), text) }

// advance returns the authorities at the time. distributed reports whether the Secrets
// of all Tunnels contain the bundle.
func (s *authorities) advance(now time.Time, distributed bool) (*authorities, error) {
	to := s.withoutExpired(now)
	switch {
	case !isValid(to.active.certificate, now):
		return to.replace(now)
	case to.next == nil && !now.Before(to.active.certificate.NotAfter.Add(-successorLead)):
		next, err := newSigner(now)
		if err != nil {
			return nil, err
		}
		to.next, to.nextSince = next, time.Time{}
	case to.next == nil:
	case to.isReady(now, distributed):
		to.promote(now)
	case distributed && (to.nextSince.IsZero() || to.nextSince.After(now)): // after, if the clock has jumped
		to.nextSince = now.UTC().Truncate(time.Second)
	}
	return to, nil
}

// withoutExpired returns a copy of the authorities without a successor that is not
// valid, and without replaced authorities from which no certificate is valid.
func (s *authorities) withoutExpired(now time.Time) *authorities {
	to := *s
	if !to.previousUntil.IsZero() && now.After(to.previousUntil) {
		to.previous, to.previousUntil = nil, time.Time{}
	}
	if to.next != nil && !isValid(to.next.certificate, now) {
		to.next, to.nextSince = nil, time.Time{}
	}
	return &to
}

// isReady reports whether the successor takes over: all bundles have contained it long
// enough, or the active authority ends too soon to wait for the remaining bundles.
func (s *authorities) isReady(now time.Time, distributed bool) bool {
	if distributed && !s.nextSince.IsZero() && !now.Before(s.nextSince.Add(distribution)) {
		return true
	}
	created := s.next.certificate.NotBefore.Add(clockSkew)
	return !now.Before(s.active.certificate.NotAfter.Add(-lifetime)) && !now.Before(created.Add(distribution))
}

// replace replaces an active authority that is not valid.
func (s *authorities) replace(now time.Time) (*authorities, error) {
	if s.next == nil {
		next, err := newSigner(now)
		if err != nil {
			return nil, err
		}
		s.next = next
	}
	s.promote(now)
	return s, nil
}

// promote makes the successor the active authority.
func (s *authorities) promote(now time.Time) {
	s.previous = append([]*x509.Certificate{s.active.certificate}, s.previous...)
	s.previous = s.previous[:min(len(s.previous), maxPrevious)]
	s.previousUntil = now.UTC().Truncate(time.Second).Add(lifetime + day) // a day for an issue that is in progress
	s.active, s.next, s.nextSince = s.next, nil, time.Time{}
}
