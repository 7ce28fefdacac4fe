package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

func (c *Cluster) pki(name string) string { return filepath.Join(c.Dir, "pki", name) }

// writeCredentials makes an authority of the cluster's own. The API server could sign its certificate itself, but rustls
// refuses one that is its own authority.
func (c *Cluster) writeCredentials(host string, port int) error {
	authority := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "restamp test cluster"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().AddDate(1, 0, 0),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:    authority.NotBefore,
		NotAfter:     authority.NotAfter,
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}, // to kubelets it is a client
		DNSNames:     []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses:  []net.IP{net.ParseIP(host), net.IPv4(10, 96, 0, 1)},
	}

	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serverKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	serviceAccountsKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	authorityDER, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	if err != nil {
		return err
	}
	// As made, with the key's id: the server's certificate must name it, or strict clients refuse it.
	authority, err = x509.ParseCertificate(authorityDER)
	if err != nil {
		return err
	}
	serverDER, err := x509.CreateCertificate(rand.Reader, server, authority, &serverKey.PublicKey, authorityKey)
	if err != nil {
		return err
	}

	authorityPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authorityDER})
	files := map[string][]byte{
		c.pki("ca.crt"):     authorityPEM,
		c.pki("server.crt"): pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: serverDER}),
		c.pki("tokens.csv"): fmt.Appendf(nil, "%s,admin,admin,system:masters\n", c.Token),
		c.kubeconfig():      kubeconfig(host, port, authorityPEM, c.Token),
	}
	for name, key := range map[string]*ecdsa.PrivateKey{"server.key": serverKey, "service-accounts.key": serviceAccountsKey} {
		der, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			return err
		}
		files[c.pki(name)] = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
	}
	for path, content := range files {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func kubeconfig(host string, port int, authority []byte, token string) []byte {
	return fmt.Appendf(nil, `apiVersion: v1
kind: Config
current-context: test
contexts:
- name: test
  context:
    cluster: test
    user: admin
    namespace: default
clusters:
- name: test
  cluster:
    server: https://%s:%d
    certificate-authority-data: %s
users:
- name: admin
  user:
    token: %s
`, host, port, base64.StdEncoding.EncodeToString(authority), token)
}

func randomToken() string {
	return rand.Text()
}
